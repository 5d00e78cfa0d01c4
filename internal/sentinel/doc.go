// Package sentinel makes errors that belong to the kind of another error without its text.
package sentinel
