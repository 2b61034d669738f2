"""What LLDB calls the registers that unwinding is about."""

# By DWARF number: x86-64 psABI, figure 3.36
NAMES = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{number}" for number in range(8, 16)), "rip")
