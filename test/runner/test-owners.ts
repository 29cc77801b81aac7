/**
 * Loaded before test files: tells node's test runner by async context which test is running.
 *
 * By default the runner uses an async hook that runs at the creation and end of every promise in the process. It takes
 * up to a quarter of the CPU time of a long file, and real servers have no such hook. An `AsyncLocalStorage` gives the
 * same answer at almost no cost. The runner behaves the same: tests are nested, hooks belong to their test, and an
 * uncaught error fails the test that it came from (`test-owners.test.ts`).
 */
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { createRequire } from 'node:module'
import { isMainThread } from 'node:worker_threads'

type Init = (asyncId: number, type: string, triggerAsyncId: number, resource: object) => void

/** The part of `node:async_hooks` that the runner reads when it is loaded. */
interface RunnerHooks {
  createHook: (callbacks: { init?: Init; destroy?: (asyncId: number) => void }) => object
  executionAsyncId: () => number
}

type Run = (this: AsyncResource, fn: (...args: unknown[]) => unknown, self: unknown, ...args: unknown[]) => unknown

/** The runner's type names of resources that can be running; it does not export them. */
const OWNERS = new Set(['Test', 'Suite', 'TestHook'])
/** The trigger id for owners, which are identified by themselves and not by where they were created. */
const NO_TRIGGER = -1

// Programs and threads that a test starts have the same flags.
if (isMainThread && /(\.(test|long)\.\w+|share-process\.ts)$/.test(process.argv[1] ?? '')) await trackByContext()

async function trackByContext(): Promise<void> {
  // The CommonJS object, since the namespace of `import` cannot be changed.
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
    // Bound, so that stack traces of tests stay short.
    return runInAsyncScope.call(this, running.run.bind(running, id, fn.bind(self)), undefined, ...args)
  }
}
