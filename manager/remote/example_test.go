package remote_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/manager/remote"
)

// The process that has the manager lets in those that know the key.
func ExampleListen() {
	ctx := context.Background()
	m, err := manager.New(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	l, err := remote.Listen(m, "localhost:0", remote.Options{Key: []byte("16 random bytes.")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	steps, err := manager.NewValue(ctx, m, 40)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer steps.Close()
	if err := manager.Publish(ctx, m, "steps", steps); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(count(ctx, l.Addr().String()))
	// Output: 42 <nil>
}

// count is what runs on another machine.
func count(ctx context.Context, addr string) (int, error) {
	m, err := remote.Dial(ctx, addr, remote.Options{Key: []byte("16 random bytes.")})
	if err != nil {
		return 0, err
	}
	defer m.Close()
	steps, err := manager.Find[*manager.Value[int]](ctx, m, "steps")
	if err != nil {
		return 0, err
	}
	defer steps.Close()
	return steps.Add(ctx, 2)
}

// A caller with another key is refused. A fingerprint names the one certificate that is right.
func ExampleDial() {
	ctx := context.Background()
	m, err := manager.New(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	key := []byte("16 random bytes.")
	l, err := remote.Listen(m, "localhost:0", remote.Options{Key: key})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	_, err = remote.Dial(ctx, l.Addr().String(), remote.Options{Key: []byte("a guess")})
	fmt.Println(errors.Is(err, remote.ErrKey))
	far, err := remote.Dial(ctx, l.Addr().String(), remote.Options{Key: key, Fingerprint: l.Fingerprint()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer far.Close()
	fmt.Println(far.PID()) // the server is on another machine
	// Output:
	// true
	// 0
}
