// Package broker runs a NATS server with JetStream within a process: alone, or as one of the nodes
// of a cluster. It is the only package that links the server.
package broker
