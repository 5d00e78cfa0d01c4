// Package rules asks a driver how it keeps the rules that Shoal relies on, and what it costs: its
// tests are all there is of it.
//
//	go test ./internal/cuda/rules                             # the simulator, which has to answer as the table says
//	rules.test -test.v -test.run TestRules -rules.real            # the driver of this machine; where it answers otherwise, the simulator is wrong
//	rules.test -test.v -test.run TestFigures -rules.real          # what each device answers in its own way
//
// Each question is asked by a process of its own, which may lose its context, hang or die: that is
// an answer, and the next question finds a device that nothing has happened to.
package rules
