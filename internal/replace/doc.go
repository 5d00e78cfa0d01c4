// Package replace writes files that are whole: whoever opens one finds the old content or the new, never a part.
package replace
