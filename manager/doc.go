// Package manager keeps values in one process
package manager
