"""Modules that give LLDB a rank's symbols."""
