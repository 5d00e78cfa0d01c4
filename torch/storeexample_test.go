package torch_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/torch"
)

// A process of PyTorch would connect by TCPStore(host, port, is_master=False).
func ExampleServeStore() {
	ctx := context.Background()
	store, err := torch.ServeStore(ctx, "127.0.0.1:0", torch.StoreOptions{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	if err := store.Set(ctx, "epochs", []byte("3")); err != nil {
		panic(err)
	}
	n, err := store.Add(ctx, "epochs", 1)
	fmt.Println(n, err)
	// Output: 4 <nil>
}
