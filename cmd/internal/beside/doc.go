// Package beside locates and runs the helper programs of shoal, such as shoal-broker. They are
// separate programs because they load shared libraries or link package net, and shoal is a static
// binary. A helper program should parse its flags with [ParseFlags].
//
// In a source tree, a helper program is built when it is first run, which takes a while.
package beside
