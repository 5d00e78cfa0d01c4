// Package securetest makes certificates for tests.
package securetest
