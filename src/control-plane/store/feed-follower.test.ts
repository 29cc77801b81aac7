import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { Change } from './feed.ts'
import { Follower } from './feed-follower.ts'
import { openStore, type Store } from './store.ts'

const log = createLog({ level: 'silent' })

describe('following the feed', () => {
  eachStore((kind) => {
    let store: Store
    before(async () => {
      store = await openStore(await kind.url())
    })
    after(() => store.close())

    const note = (...ids: string[]) =>
      store.write(async (writer) => {
        for (const id of ids) writer.changed('thing', id)
      })

    /** Records what it was given, and can be waited for. */
    function follow({ fails = 0 }: { fails?: number } = {}) {
      const seen: string[] = []
      const waiting = new Map<string, () => void>()
      let loads = 0
      let failures = fails
      const followed = {
        load: async () => void loads++,
        apply: async (changes: readonly Change[]) => {
          if (failures-- > 0) throw new Error('not now')
          for (const { id } of changes) {
            seen.push(id)
            waiting.get(id)?.()
          }
        },
      }
      const follower = new Follower({ store, followed, log })
      const until = (id: string) => new Promise<void>((resolve) => void waiting.set(id, resolve))
      return { follower, seen, until, loads: () => loads }
    }

    test('loads first, then gives what changed since, in order', async () => {
      await note('before')
      const { follower, seen, until, loads } = follow()
      await follower.start()
      assert.equal(loads(), 1)
      const done = until('c')
      await note('a')
      await note('b')
      await note('c')
      await done
      assert.deepEqual(seen, ['a', 'b', 'c'])
      await follower.stop()
    })

    test('retries what failed, and loses no change', async () => {
      const { follower, seen, until } = follow({ fails: 1 })
      await follower.start()
      const done = until('e')
      await note('d')
      await note('e')
      await done
      assert.deepEqual(seen, ['d', 'e'])
      await follower.stop()
    })

    test('a change during a load is not missed', async () => {
      const seen: string[] = []
      const applied = Promise.withResolvers<void>()
      const follower = new Follower({
        store,
        log,
        followed: {
          load: () => note('meanwhile'),
          apply: async (changes) => {
            seen.push(...changes.map(({ id }) => id))
            applied.resolve()
          },
        },
      })
      await follower.start()
      await applied.promise
      assert.deepEqual(seen, ['meanwhile'])
      await follower.stop()
    })

    test('what takes long delays no later change, and the position waits for it', async () => {
      const slow = Promise.withResolvers<void>()
      const progress: number[] = []
      const applied = new Map(['slow', 'quick'].map((id) => [id, Promise.withResolvers<number>()]))
      const follower: Follower = new Follower({
        store,
        log,
        followed: {
          load: async () => {},
          apply: async (changes) => {
            for (const { id, revision } of changes) applied.get(id)?.resolve(revision)
            return changes.some(({ id }) => id === 'slow') ? { later: slow.promise } : undefined
          },
        },
        onProgress: () => progress.push(follower.position),
      })
      await follower.start()
      const before = follower.position
      await note('slow')
      await applied.get('slow')?.promise
      await note('quick')
      const last = (await applied.get('quick')?.promise) ?? 0
      await store.feed.latest()
      assert.equal(follower.position, before)
      slow.resolve()
      await slow.promise
      await store.feed.latest()
      assert.equal(follower.position, last)
      assert.equal(progress.at(-1), last)
      assert.equal(store.feed.written, last)
      await follower.stop()
    })

    test('nothing is delivered after a stop', async () => {
      const { follower, seen } = follow()
      await follower.start()
      await follower.stop()
      await note('late')
      assert.deepEqual(seen, [])
    })

    test('a failure after a stop is ignored', async () => {
      const lines: string[] = []
      const { promise: failing, reject } = Promise.withResolvers<void>()
      const { promise: reached, resolve } = Promise.withResolvers<void>()
      const followed = {
        load: async () => {},
        apply: () => {
          resolve()
          return failing
        },
      }
      const own = createLog({ level: 'warn', format: 'json', destination: { write: (line) => lines.push(line) } })
      const follower = new Follower({ store, followed, log: own })
      await follower.start()
      await note('last')
      await reached
      const stopped = follower.stop()
      reject(new Error('the store is closed'))
      await stopped
      assert.deepEqual(lines, [])
    })
  })
})
