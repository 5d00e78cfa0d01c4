// Package broker runs a NATS server with JetStream in this process, standalone or as a node of a
// cluster. No other package may link the server.
//
//	b, err := broker.Start(broker.Options{Dir: "broker"})
//	if err != nil {
//		return err
//	}
//	defer b.Close()
//	conn, err := nats.Connect(ctx, b.URL(), nats.Options{})
//	if err != nil {
//		return err
//	}
//	defer conn.Close()
//	fmt.Println(b.Stats().Connections)
//
// Start with [Start], [Broker.URL] and [nats.Connect].
//
// [nats.Connect]: https://pkg.go.dev/github.com/shoal-mp/shoal/nats#Connect
package broker
