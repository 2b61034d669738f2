"""What the extension is known to get wrong, each with its reason; a query that becomes right must leave this list.

Takes nothing from a run; the tests expect every one of these to fail (strictly).
"""

from __future__ import annotations

from tests.host.plan import Query

PENDING: dict[Query, str] = {}
