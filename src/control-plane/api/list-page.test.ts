import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PresentTunnel } from '../../model/presence.ts'
import { nobodyPresent, presentKind } from '../records/online-lists.ts'
import { linksUnder } from '../resources/resource-links.ts'
import { tunnels } from '../resources/tunnels.ts'
import { oneMore, pageOf } from './list-page.ts'

test('a page of tunnels ends when they show many groups, and by its cursor every tunnel comes once', async () => {
  const links = linksUnder('http://api.test')
  const groups = Array.from({ length: 20_000 }, (_, i) => `bkdtg_${i}`)
  const all = ['5', '4', '3', '2', '1'].map(
    (n) => ({ id: `tn_${n}`, sessionId: 'ts_1', labels: { app: n === '2' ? 'alone' : 'crowd' } }) as const,
  )
  let shown = 0
  const presenting = {
    links,
    groupsOf: ({ app }: Readonly<Record<string, string>>) => {
      shown++
      return app === 'crowd' ? groups : [...groups, ...groups, ...groups]
    },
  }
  const page = async (limit: number, beforeId = 'tn_9') => {
    const presence = {
      ...nobodyPresent,
      tunnels: async ({ limit: most }: { limit: number }) =>
        all.filter(({ id }) => id < beforeId).slice(0, most) as readonly object[] as readonly PresentTunnel[],
    }
    const found = await presentKind(tunnels).page(presence, oneMore({ limit }), presenting)
    const { tunnels: items, next_page_uri: next } = pageOf(found, tunnels, { limit }, links)
    const ids = (items as readonly { readonly id: string }[]).map(({ id }) => id) // shown just above
    return { ids, next: next && new URL(String(next)).searchParams.get('before_id') }
  }
  assert.deepEqual(await page(100), { ids: ['tn_5', 'tn_4'], next: 'tn_4' })
  assert.equal(shown, 3, 'the rest is not even shown')
  assert.deepEqual(await page(100, 'tn_4'), { ids: ['tn_3'], next: 'tn_3' })
  assert.deepEqual(await page(100, 'tn_3'), { ids: ['tn_2'], next: 'tn_2' }, 'at least one')
  assert.deepEqual(await page(100, 'tn_2'), { ids: ['tn_1'], next: null })
  assert.deepEqual(await page(1), { ids: ['tn_5'], next: 'tn_5' })
})
