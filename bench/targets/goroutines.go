// argv[1] goroutines that wait, on stacks of 25 depths; argv[2] that sleep 10 ms at a time; and one
// that computes. For each line of its input it writes how much was computed, as JSON.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

var computed uint64
var never = make(chan int)

//go:noinline
func park(depth int) int {
	if depth > 0 {
		return park(depth-1) + 1
	}
	return <-never
}

func nap() {
	for {
		time.Sleep(10 * time.Millisecond)
	}
}

func compute() {
	x := uint64(1)
	for {
		for i := 0; i < 10000; i++ {
			x = x*6364136223846793005 + 1
		}
		atomic.AddUint64(&computed, 1+x&0)
	}
}

func main() {
	parked, _ := strconv.Atoi(os.Args[1])
	sleeping, _ := strconv.Atoi(os.Args[2])
	for i := 0; i < parked; i++ {
		depth := i % 25
		go func() { park(depth) }()
	}
	for i := 0; i < sleeping; i++ {
		go nap()
	}
	go compute()
	input := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for input.Scan() {
		fmt.Printf("{\"computed\": %d}\n", atomic.LoadUint64(&computed))
	}
}
