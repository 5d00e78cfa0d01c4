// This file is empty on purpose: it lets entersyscallblock be declared without a body.
