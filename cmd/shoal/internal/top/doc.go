// Package top shows what the Shoal programs of this user do, again and again: on a terminal in one
// place, elsewhere one below the other.
//
//	err := top.Run(ctx, os.Stdout, top.Options{Every: time.Second})
//
// The trap: it looks for as long as it waits, so the first picture comes after Every.
package top
