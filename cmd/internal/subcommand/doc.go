// Package subcommand is the command line of a program that does several things, each with flags of
// its own.
//
// The trap: a wrong command line ends the program here, so nothing may have been started by then.
package subcommand
