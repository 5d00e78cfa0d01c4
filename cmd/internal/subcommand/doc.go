// Package subcommand is the command line of a program that does several things, each with flags of its own.
//
// The trap: whoever misuses it ends the program, so nothing may have been started by then.
package subcommand
