/** Settings of V8: where new objects go, when memory is given back, and how much is inlined. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Makes V8 allocate all new objects in the young generation.
 *
 * V8 tracks where in the code objects are allocated. If objects of one place lived long before, it allocates later ones of
 * that place directly in the old generation ("pretenuring"). Here every request allocates at the same places, and its
 * objects die with it. In the old generation they would not be collected for seconds, and would keep alive everything they
 * point to. Whether this began on a server was chance; where it did, a third of what requests allocated was copied and kept
 * for nothing.
 */
export function keepObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring')
}

/**
 * Gives back the memory that loading code has left behind. V8 would keep it: the young generation has grown to tens of
 * megabytes, and nothing makes it shrink in an idle process. Takes less than a tenth of a second.
 */
export function collectLoaded(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  // Restored, since V8 rejects compiled code that was cached under other flags.
  setFlagsFromString('--no-expose-gc')
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

/** The largest function that is inlined, and the most that is inlined into one function, in bytes of bytecode. */
const MOST_OF_ONE = 800
const MOST_IN_ALL = 3000

/**
 * Makes V8 inline more functions. A request passes through many small ones, and by default V8 stops at 920 bytes for each
 * caller. This allows three times as much: a request of an edge costs about 1.5 % less.
 */
export function inlineMore(): void {
  setFlagsFromString(`--max-inlined-bytecode-size=${MOST_OF_ONE}`)
  setFlagsFromString(`--max-inlined-bytecode-size-cumulative=${MOST_IN_ALL}`)
}
