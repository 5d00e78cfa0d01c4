// Command core is the smallest program that has all of the core inside.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

var greet = shoal.Register("greet", func(ctx context.Context, rank int, words *ipc.Queue[string]) error {
	return words.Put(ctx, fmt.Sprint("hello from ", rank))
})

func main() {
	shoal.Main(func(ctx context.Context) error {
		words, err := ipc.NewQueue[string](1)
		if err != nil {
			return err
		}
		defer words.Close()
		if err := greet.Spawn(ctx, 1, words); err != nil {
			return err
		}
		word, err := words.Get(ctx)
		fmt.Println(word)
		return err
	})
}
