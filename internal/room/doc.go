// Package room bounds the memory that a file may ask for: a few bytes can claim a shape of
// terabytes.
package room
