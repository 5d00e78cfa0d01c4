// Package top shows what the Shoal programs of this user do, again and again: on a terminal as a
// screen with views and keys, elsewhere as text.
//
//	err := top.Run(ctx, os.Stdout, top.Options{Every: time.Second, Keys: os.Stdin})
//
// The trap: it looks for as long as it waits, so the first picture of the text comes after Every.
package top
