// Frames as the Go compiler creates them.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"sync/atomic"
	"time"
)

var arrived int32
var some = 40

func spin()

//go:noinline
func stay() {
	atomic.AddInt32(&arrived, 1)
	spin()
}

type shape interface{ area() int }

type square struct{ side int }

//go:noinline
func (one square) area() int {
	stay()
	return one.side * one.side
}

func inMethod() {
	var one shape = square{some}
	some += one.area()
}

func inClosure() {
	add := func(number int) int {
		stay()
		return number + some
	}
	some = add(1)
}

func inSort() {
	numbers := []int{3, 1, 2}
	sort.Slice(numbers, func(left, right int) bool {
		stay()
		return numbers[left] < numbers[right]
	})
}

func main() {
	runtime.GOMAXPROCS(8)
	for _, enter := range []func(){inMethod, inClosure, inSort} {
		enter := enter
		go func() {
			runtime.LockOSThread()
			enter()
		}()
	}
	for atomic.LoadInt32(&arrived) < 3 {
		time.Sleep(time.Millisecond)
	}
	fmt.Println("ready")
	time.Sleep(900 * time.Second)
}
