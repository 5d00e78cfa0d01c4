//go:build !linux

package top_test

func play() {}
