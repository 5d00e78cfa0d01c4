// Package beside finds the programs that shoal runs because it cannot be what they are: it is
// static, and they load libraries or use the network. Such a program reads its flags by ParseFlags.
//
// The trap: from a source tree a program is built when it is run first, which takes a while.
package beside
