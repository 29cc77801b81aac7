/** The Grafana dashboard only uses metrics that exist, with labels that they have. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { type PlaneMetrics, sumOf } from '../../model/plane-metrics.ts'
import { ApiMetrics, metricsPage } from './metrics.ts'
import { registerCaps, registerCluster, registerProcess } from './server-metrics.ts'
import { registerTraffic } from './traffic-metrics.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly description?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

const { panels, templating } = JSON.parse(
  readFileSync(new URL('../../../deploy/grafana/postern.json', import.meta.url), 'utf8'),
) as { readonly panels: readonly Panel[]; readonly templating: unknown }

/** Labels that Prometheus itself adds to every metric. */
const OF_PROMETHEUS = ['instance']

/** The labels of each metric of a busy server. */
async function metricLabels(): Promise<Map<string, Set<string>>> {
  const row = { edge: 'e', address: 'a', connections: 1, open: 1, bytesIn: 1, bytesOut: 1, requestMs: 1, refused: 1 }
  const rows = [{ ...row, requests: [1, 1, 1, 1, 1, 1] }]
  const latency = { bounds: [5], steps: [1, 1], sumMs: 1 }
  const metrics: PlaneMetrics = { ...sumOf([]), edges: rows, endpoints: rows, latency, firstExpiry: 1 }
  const registry = new Registry()
  new ApiMetrics(registry).served({ method: 'GET', route: '/edges/https', status: 500, seconds: 1 })
  registerTraffic(registry, () => metrics)
  registerCaps(
    registry,
    () => [{ door: 'visitors', open: 1, refusals: [['max-connections', 1]] }],
    () => metrics,
  )
  registerProcess(registry, { lostLines: () => 1, refusedConnections: () => 1, restarts: () => ({ worker: 1 }) })
  const cluster = () => ({ nodes: 3, isLeaseHeld: true, leaseAgeMs: 1, waitingRows: 1 })
  registerCluster(registry, cluster, () => metrics)
  const labels = new Map<string, Set<string>>()
  for (const line of (await metricsPage(registry)).split('\n')) {
    const [, name, list = ''] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? []
    if (name === undefined) continue
    const known = labels.get(name) ?? new Set(OF_PROMETHEUS)
    for (const [, label = ''] of list.matchAll(/(\w+)="/g)) known.add(label)
    labels.set(name, known)
  }
  return labels
}

test('every metric and every label of the dashboard exists', async () => {
  const known = await metricLabels()
  const exprs = panels.flatMap(({ targets = [] }) => targets)
  assert.ok(exprs.length > 40)
  for (const { expr, legendFormat } of exprs) {
    const names = [...expr.matchAll(/\b(?:postern|process|nodejs)_\w+/g)].map(([name]) => name)
    assert.ok(names.length > 0, expr)
    const labels = new Set(names.flatMap((name) => [...(known.get(name) ?? assert.fail(`no metric ${name}`))]))
    const selected = [...expr.matchAll(/(\w+)=~?"/g)].map(([, label = '']) => label)
    const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '))
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label)
    for (const label of [...selected, ...grouped, ...shown]) assert.ok(labels.has(label), `${label} in ${expr}`)
    // A legend can only show labels that its sum keeps.
    if (grouped.length > 0) for (const label of shown) assert.ok(grouped.includes(label), `${label} in ${expr}`)
    assert.ok(selected.includes('instance'), `${expr} does not select the chosen nodes`)
  }
  assert.match(JSON.stringify(templating), /label_values\(postern_sessions, instance\)/)
})

test('each panel has an id, a description and a place of its own', () => {
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const taken = new Set<string>()
  for (const { type, title, description, gridPos } of panels) {
    assert.ok(type === 'row' || description, title)
    const { x, y, w, h } = gridPos
    assert.ok(x + w <= 24, title)
    for (let at = 0; at < w * h; at++) {
      const place = `${x + (at % w)},${y + Math.floor(at / w)}`
      assert.ok(!taken.has(place), `${title} overlaps another panel`)
      taken.add(place)
    }
  }
})
