// Package subcommand implements the command line of a program with subcommands that have flags of
// their own.
//
// A wrong command line exits the program with status 2, so callers must not start anything before
// [Run].
package subcommand
