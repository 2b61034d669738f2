"""Every method of privatization with every tool: what ranks print of themselves is what tools must say of them."""
