/** For tests: the thread that `worker-pool.test.ts` starts. */
import { type Done, serveThread } from '../serve-thread.ts'

export type TestWork =
  | { readonly say: string }
  | { readonly spin: true }
  | { readonly hoard: true }
  | { readonly fail: string }
  /** Counts itself in the first place of the memory, and goes on when the second is no longer 0. */
  | { readonly waitAt: SharedArrayBuffer }

function run(work: TestWork): Done {
  if ('say' in work) return { result: work.say }
  if ('fail' in work) throw new Error(work.fail)
  if ('waitAt' in work) {
    const places = new Int32Array(work.waitAt)
    Atomics.add(places, 0, 1)
    Atomics.wait(places, 1, 0)
    return { result: 'went on' }
  }
  const kept: unknown[] = []
  for (;;) if ('hoard' in work) kept.push(new Array(1_000_000).fill(0))
}

const load = async () => (work: unknown) => run(work as TestWork)

serveThread({ test: load, other: load })
