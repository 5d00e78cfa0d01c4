// Package replace writes files that are whole: an opener finds the old content or the new, never a
// part.
package replace
