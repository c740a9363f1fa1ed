package main

import (
	"fmt"
	"strings"
)

// addWarpgroups adds what Hopper's warpgroups multiply with. Registers are handed over by
// address: results come to them when they are waited for.
func addWarpgroups() {
	add("barrier.sync.aligned", form{args: 2, version: 60, cpp: func(t *translator, _ []string, a []operand) string {
		return fmt.Sprintf("emulation::wait_for_warpgroup(%s, %s, %s);", t.source(a[0], u32), t.source(a[1], u32), t.at())
	}})
	add("fence.proxy.async.shared::cta", form{target: 90, version: 80, cpp: func(*translator, []string, []operand) string {
		return "emulation::fence_proxy_async();"
	}})
	add("wgmma.fence.sync.aligned", form{target: 90, only: true, version: 80, cpp: func(t *translator, _ []string, _ []operand) string {
		return fmt.Sprintf("emulation::wgmma_fence(%s);", t.at())
	}})
	add("wgmma.commit_group.sync.aligned", form{target: 90, only: true, version: 80, cpp: func(t *translator, _ []string, _ []operand) string {
		return fmt.Sprintf("emulation::wgmma_commit(%s);", t.at())
	}})
	add("wgmma.wait_group.sync.aligned", form{args: 1, target: 90, only: true, version: 80, cpp: func(t *translator, _ []string, a []operand) string {
		return fmt.Sprintf("emulation::wgmma_wait(%s, %s);", t.constant(a[0], 0, 7), t.at())
	}})
	add("wgmma.mma_async.sync.aligned.m64n128k256.s32.b1.b1.and.popc", form{args: 4, target: 90, only: true, version: 80, cpp: wgmma("wgmma_and")})
	add("wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.s8", form{args: 4, target: 90, only: true, version: 84, cpp: wgmma("wgmma_u8s8")})
}

// wgmma translates a product of 64 rows and 128 columns, of which a lane has 64 results.
func wgmma(function string) func(*translator, []string, []operand) string {
	return func(t *translator, _ []string, a []operand) string {
		registers := t.vector(a[0], 64)
		return fmt.Sprintf("emulation::%s({&%s}, %s, %s, %s, %s);", function, strings.Join(registers, ", &"), t.source(a[1], scalars["u64"]),
			t.source(a[2], scalars["u64"]), t.source(a[3], scalars["pred"]), t.at())
	}
}
