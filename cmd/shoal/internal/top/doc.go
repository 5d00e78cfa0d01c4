// Package top displays the activity of the current user's Shoal programs and refreshes it
// periodically. On a terminal it is an interactive screen with several views; otherwise it is text.
//
//	err := top.Run(ctx, os.Stdout, top.Options{Every: time.Second, Keys: os.Stdin})
//
// Rates need two observations, so the first text output appears only after Options.Every.
package top
