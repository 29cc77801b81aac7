import assert from 'node:assert/strict'
import { after, afterEach, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { sealedBy, storeRows } from '../records/testing/test-rows.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { tlsEdges } from '../resources/tls-edges.ts'
import { Follower } from '../store/feed-follower.ts'
import { openStore, type Store } from '../store/store.ts'
import { itemsOf, type MirrorChange, mirror } from './mirror.ts'

type Item = { readonly text: string }

const { kind } = httpsEdges
const log = createLog({ level: 'silent' })

/** A change as plain data: the maps may change later. */
const copyOf = ({ isAll, removed, set, all }: MirrorChange<Item>) => ({
  isAll,
  removed: Object.fromEntries(removed),
  set: Object.fromEntries(set),
  size: all.size,
})

describe('a mirror', () => {
  eachStore(
    (databases) => {
      const opened: Store[] = []
      const followers: Follower[] = []
      let store: Store
      let sent: ReturnType<typeof copyOf>[]
      let arrived: PromiseWithResolvers<void>
      /** What the receiver does with the next change. */
      let receive: () => unknown

      beforeEach(async () => {
        store = await sealedBy(await openStore(await databases.url()))
        opened.push(store)
        sent = []
        arrived = Promise.withResolvers()
        receive = () => {}
      })
      afterEach(() => Promise.all(followers.splice(0).map((each) => each.stop())))
      after(() => Promise.all(opened.map((each) => each.close())))

      const mirrored = () =>
        mirror<Item>({
          ...itemsOf(store, [httpsEdges], ({ fields }) =>
            fields.description === 'hidden' ? undefined : { text: String(fields.description) },
          ),
          async send(change) {
            sent.push(copyOf(change))
            arrived.resolve()
            await receive()
          },
        })
      const follow = async () => {
        const follower = new Follower({ store, followed: mirrored(), log })
        followers.push(follower)
        await follower.start()
      }
      const fieldsOf = (description: string) => ({ hostports: [], description })
      const put = (id: string, text: string) => storeRows(store, [{ id, kind, fields: fieldsOf(text) }])
      const edit = (id: string, text: string) =>
        store.write(async (writer) => {
          await writer.replaceFields(id, fieldsOf(text))
          writer.changed(kind, id)
        })
      const remove = (id: string) =>
        store.write(async (writer) => {
          await writer.remove(id)
          writer.changed(kind, id)
        })
      /** Resolves when `count` changes have been sent. */
      const sentSoFar = async (count: number) => {
        while (sent.length < count) {
          await arrived.promise
          arrived = Promise.withResolvers()
        }
        return sent
      }

      test('sends that there is nothing, since the receiver may have something of an earlier control plane', async () => {
        await follow()
        assert.deepEqual(sent, [{ isAll: true, removed: {}, set: {}, size: 0 }])
      })

      test('sends everything first, and then each change in its order', async () => {
        await put('e1', 'one')
        await follow()
        await edit('e1', 'uno')
        await sentSoFar(2)
        await remove('e1')
        await sentSoFar(3)
        assert.deepEqual(sent, [
          { isAll: true, removed: {}, set: { e1: { text: 'one' } }, size: 1 },
          { isAll: false, removed: { e1: { text: 'one' } }, set: { e1: { text: 'uno' } }, size: 1 },
          { isAll: false, removed: { e1: { text: 'uno' } }, set: {}, size: 0 },
        ])
      })

      test('sends everything again after a gap', async () => {
        await put('e1', 'one')
        const followed = mirrored()
        await followed.load()
        // Missed: neither change is in the feed any more.
        await store.write((writer) => writer.remove('e1'))
        await put('e2', 'two')
        await followed.load()
        await followed.apply([{ kind, id: 'e1', revision: 9 }])
        assert.deepEqual(sent.slice(1), [
          { isAll: true, removed: {}, set: { e2: { text: 'two' } }, size: 1 },
          { isAll: false, removed: {}, set: {}, size: 1 },
        ])
      })

      test('gives a slow receiver one change at a time, and what came meanwhile together', async () => {
        await put('e1', 'one')
        await put('e2', 'two')
        await follow()
        const slow = Promise.withResolvers<void>()
        receive = () => slow.promise
        await edit('e1', 'uno')
        await sentSoFar(2)
        await edit('e1', 'un')
        await edit('e2', 'deux')
        await store.feed.latest()
        assert.equal(sent.length, 2)
        slow.resolve()
        await sentSoFar(3)
        assert.deepEqual(sent.at(-1)?.set, { e1: { text: 'un' }, e2: { text: 'deux' } })
        assert.deepEqual(sent.at(-1)?.removed, { e1: { text: 'uno' }, e2: { text: 'two' } })
      })

      test('sends a change that failed again, and names again what it removes', async () => {
        await put('e1', 'one')
        const followed = mirrored()
        await followed.load()
        receive = () => assert.fail('no answer')
        await store.write((writer) => writer.replaceFields('e1', fieldsOf('uno')))
        const change = { kind, id: 'e1', revision: 1 }
        await assert.rejects(followed.apply([change]), /no answer/)
        receive = () => {}
        await store.write((writer) => writer.remove('e1'))
        await put('e2', 'two')
        await followed.apply([change, { ...change, revision: 2 }, { kind, id: 'e2', revision: 3 }])
        assert.deepEqual(sent.at(-1), {
          isAll: false,
          removed: { e1: { text: 'one' } },
          set: { e2: { text: 'two' } },
          size: 1,
        })
      })

      test('has not loaded while the receiver does not answer', async () => {
        await put('e1', 'one')
        const followed = mirrored()
        receive = () => assert.fail('no answer')
        await assert.rejects(followed.load(), /no answer/)
        receive = () => {}
        await followed.load()
        assert.deepEqual(sent[1], sent[0])
      })

      test('reads more resources than are read at once, and changes and drops them', async () => {
        const ids = Array.from({ length: 250 }, (_, i) => `e${String(i).padStart(4, '0')}`)
        await storeRows(store, [
          ...ids.map((id) => ({ id, kind, fields: fieldsOf(id === 'e0007' ? 'hidden' : id) })),
          { id: 'other', kind: tlsEdges.kind, fields: fieldsOf('other') },
        ])
        const followed = mirrored()
        await followed.load()
        assert.equal(sent[0]?.size, 249)
        assert.equal(sent[0]?.set.other, undefined)

        await store.write(async (writer) => {
          await writer.replaceFields('e0007', fieldsOf('seven'))
          await writer.replaceFields('e0008', fieldsOf('eight'))
          await writer.remove('e0009')
        })
        const changes = ['e0007', 'e0008', 'e0009', 'e0008'].map((id, i) => ({ kind, id, revision: i + 1 }))
        await followed.apply(changes)
        assert.deepEqual(sent[1], {
          isAll: false,
          removed: { e0008: { text: 'e0008' }, e0009: { text: 'e0009' } },
          set: { e0007: { text: 'seven' }, e0008: { text: 'eight' } },
          size: 249,
        })
        await followed.apply([{ kind: tlsEdges.kind, id: 'other', revision: 9 }])
        await followed.apply([])
        assert.equal(sent.length, 2)
      })
    },
    ['sqlite'],
  )
})
