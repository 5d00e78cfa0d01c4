// Package regular opens files that have a size and can be read at any place.
package regular
