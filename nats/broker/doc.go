// Package broker runs a NATS server with JetStream in this process, standalone or as a node of a
// cluster. No other package may link the server.
package broker
