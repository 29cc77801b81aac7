/**
 * Loaded before each test file: tells node's test runner by async context which test is running.
 *
 * The runner asks that of a hook that hears of the birth and the end of every promise of the process, which takes up
 * to a quarter of the processor time of a long file, and which no server of an operator has. An `AsyncLocalStorage`
 * answers the same for next to nothing. What the runner does with the answer is untouched: tests are nested, hooks
 * belong to their test, and an error that nobody caught fails the test that it came from (`test-owners.test.ts`).
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { createRequire } from 'node:module'
import { isMainThread } from 'node:worker_threads'

type Init = (asyncId: number, type: string, triggerAsyncId: number, resource: object) => void

/** The part of `node:async_hooks` that the runner takes when it is loaded. */
interface RunnerHooks {
  createHook: (callbacks: { init?: Init; destroy?: (asyncId: number) => void }) => object
  executionAsyncId: () => number
}

type Run = (this: AsyncResource, fn: (...args: unknown[]) => unknown, self: unknown, ...args: unknown[]) => unknown

/** How the runner calls the resources that can be running; it does not export them. */
const OWNERS = new Set(['Test', 'Suite', 'TestHook'])
/** Of no resource: an owner is known by itself, and not by what it was made in. */
const NO_TRIGGER = -1

if (isMainThread && process.env.NODE_TEST_CONTEXT !== undefined) await trackByContext()

async function trackByContext(): Promise<void> {
  // The object itself, since what `import` gives cannot be changed.
  const hooks: RunnerHooks = createRequire(import.meta.url)('node:async_hooks')
  const { createHook, executionAsyncId } = hooks
  const running = new AsyncLocalStorage<number>()
  let known: Init | undefined
  hooks.createHook = (callbacks) => {
    if (!callbacks.init || !callbacks.destroy) return createHook(callbacks)
    known = callbacks.init
    return { enable() {}, disable() {} }
  }
  hooks.executionAsyncId = () => running.getStore() ?? executionAsyncId()
  await import('node:test')
  Object.assign(hooks, { createHook, executionAsyncId })

  const seen = new WeakSet<AsyncResource>()
  const resources: { runInAsyncScope: Run } = AsyncResource.prototype
  const { runInAsyncScope } = resources
  resources.runInAsyncScope = function (fn, self, ...args) {
    if (!OWNERS.has(this.constructor.name)) return runInAsyncScope.call(this, fn, self, ...args)
    const id = this.asyncId()
    if (!seen.has(this)) known?.(id, this.constructor.name, NO_TRIGGER, this)
    seen.add(this)
    // Bound, so that the traces of tests stay short.
    return runInAsyncScope.call(this, running.run.bind(running, id, fn.bind(self)), undefined, ...args)
  }
}
