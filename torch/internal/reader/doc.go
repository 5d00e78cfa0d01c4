// Package reader registers readers of Python data sets. A reader that needs a large dependency is a
// package of its own, and a program links it by importing it.
package reader
