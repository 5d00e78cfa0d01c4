// Other is a program that tests build with the sources of another version: a worker of theirs, or a
// process that wants to meet theirs.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	_ "github.com/shoal-mp/shoal/ipc/tcp"
)

var _ = shoal.Register("nothing", func(context.Context, int, struct{}) error { return nil })

func main() {
	shoal.Main(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var err error
		var token arena.Token
		switch os.Args[1] {
		case "dial":
			_, err = ipc.Dial[int](ctx, os.Args[2], []byte("key"))
			say(errors.Is(err, ipc.ErrPeer), err)
		case "join":
			if _, err = hex.Decode(token[:], []byte(os.Args[3])); err != nil {
				return err
			}
			_, err = arena.Join(ctx, os.Args[2], token)
			say(errors.Is(err, arena.ErrVersion), err)
		}
		return nil
	})
}

func say(typed bool, err error) { fmt.Printf("typed: %t\n%v\n", typed, err) }
