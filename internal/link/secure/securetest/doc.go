// Package securetest provides certificates for tests.
package securetest
