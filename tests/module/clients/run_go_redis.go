// Runs the functions of go-redis for filters, in RESP2 and RESP3: run_go_redis.go PORT VALKEY.
// VALKEY is true if the server is Valkey. There, BF.INFO of a single field answers as valkey-bloom does.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"

	"github.com/redis/go-redis/v9"
)

var commands int

// Ends the program unless the call went well and gave what was expected.
func expect[T any](name string, expected T) func(T, error) {
	return func(answer T, err error) {
		commands++
		if err != nil || !reflect.DeepEqual(answer, expected) {
			fmt.Println(name, "answers", answer, err, "instead of", expected)
			os.Exit(1)
		}
	}
}

func expectError(name string, expected string, err error) {
	commands++
	if err == nil || err.Error() != expected {
		fmt.Println(name, "answers", err, "instead of", expected)
		os.Exit(1)
	}
}

func check(client *redis.Client, valkey bool) {
	ctx := context.Background()
	client.FlushAll(ctx)
	expect("BF.RESERVE", "OK")(client.BFReserve(ctx, "b", 0.001, 100).Result())
	expect("BF.RESERVE", "OK")(client.BFReserveExpansion(ctx, "e", 0.001, 100, 4).Result())
	expect("BF.RESERVE", "OK")(client.BFReserveNonScaling(ctx, "n", 0.001, 100).Result())
	expectError("BF.RESERVE", "ERR item exists", client.BFReserve(ctx, "b", 0.001, 100).Err())
	expect("BF.ADD", true)(client.BFAdd(ctx, "b", "a").Result())
	expect("BF.ADD", false)(client.BFAdd(ctx, "b", "a").Result())
	expect("BF.MADD", []bool{false, true})(client.BFMAdd(ctx, "b", "a", "b").Result())
	insert := &redis.BFInsertOptions{Capacity: 100, Error: 0.001}
	expect("BF.INSERT", []bool{false, true})(client.BFInsert(ctx, "b", insert, "b", "c").Result())
	expectError("BF.INSERT", "ERR not found",
		client.BFInsert(ctx, "none", &redis.BFInsertOptions{NoCreate: true}, "a").Err())
	expect("BF.EXISTS", true)(client.BFExists(ctx, "b", "c").Result())
	expect("BF.MEXISTS", []bool{true, false})(client.BFMExists(ctx, "b", "a", "z").Result())
	expect("BF.CARD", int64(3))(client.BFCard(ctx, "b").Result())
	info, err := client.BFInfo(ctx, "b").Result()
	expect("BF.INFO", redis.BFInfo{Capacity: 100, Size: info.Size, Filters: 1, ItemsInserted: 3,
		ExpansionRate: 2})(info, err)
	if !valkey {
		expect("BF.INFO CAPACITY", redis.BFInfo{Capacity: 100})(client.BFInfoCapacity(ctx, "b").Result())
		expect("BF.INFO ITEMS", redis.BFInfo{ItemsInserted: 3})(client.BFInfoItems(ctx, "b").Result())
		expect("BF.INFO FILTERS", redis.BFInfo{Filters: 1})(client.BFInfoFilters(ctx, "b").Result())
		expect("BF.INFO EXPANSION", redis.BFInfo{ExpansionRate: 2})(client.BFInfoExpansion(ctx, "b").Result())
	}
	for at := int64(0); ; {
		chunk, err := client.BFScanDump(ctx, "b", at).Result()
		expect("BF.SCANDUMP", chunk)(chunk, err)
		if at = chunk.Iter; at == 0 {
			break
		}
		expect("BF.LOADCHUNK", "OK")(client.BFLoadChunk(ctx, "copy", at, chunk.Data).Result())
	}
	expect("BF.MEXISTS", []bool{true, false})(client.BFMExists(ctx, "copy", "a", "z").Result())

	expect("CF.RESERVE", "OK")(client.CFReserve(ctx, "c", 1000).Result())
	expect("CF.ADD", true)(client.CFAdd(ctx, "c", "a").Result())
	expect("CF.ADDNX", false)(client.CFAddNX(ctx, "c", "a").Result())
	expect("CF.INSERT", []bool{true, true})(
		client.CFInsert(ctx, "c", &redis.CFInsertOptions{}, "a", "b").Result())
	expect("CF.INSERTNX", []int64{0, 1})(
		client.CFInsertNX(ctx, "c", &redis.CFInsertOptions{}, "a", "d").Result())
	expect("CF.COUNT", int64(2))(client.CFCount(ctx, "c", "a").Result())
	expect("CF.EXISTS", true)(client.CFExists(ctx, "c", "b").Result())
	expect("CF.MEXISTS", []bool{true, false})(client.CFMExists(ctx, "c", "a", "z").Result())
	expect("CF.DEL", true)(client.CFDel(ctx, "c", "a").Result())
	expectError("CF.DEL", "Not found", client.CFDel(ctx, "none", "a").Err())
	cuckoo, err := client.CFInfo(ctx, "c").Result()
	expect("CF.INFO", redis.CFInfo{Size: cuckoo.Size, NumBuckets: cuckoo.NumBuckets, NumFilters: 1,
		NumItemsInserted: 3, NumItemsDeleted: 1, BucketSize: 2, ExpansionRate: 1, MaxIteration: 20})(
		cuckoo, err)
}

func main() {
	for _, protocol := range []int{2, 3} {
		check(redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + os.Args[1], Protocol: protocol}),
			os.Args[2] == "true")
	}
	fmt.Printf("go-redis %s: %d commands\n", redis.Version(), commands)
}
