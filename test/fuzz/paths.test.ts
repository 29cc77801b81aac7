/** D63 against real routers; `paths.long.ts` is the long form. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { asSent } from '../../src/data-plane/edge/proxy/path-readings.ts'
import type { Owner } from '../support/upstream.ts'
import { expressRouter, fastifyRouter, findNginx, nginxRouter, type PathRouter, urlRouter } from './path-routers.ts'
import { type Decide, runPaths } from './paths.ts'

const PAIRS = 4000
const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))
const nginx = findNginx()

/** The routers by name. */
const routers: Record<string, ((owner: Owner) => Promise<PathRouter>) | undefined> = {
  Fastify: fastifyRouter,
  'lenient Fastify': (owner) => fastifyRouter(owner, { isLenient: true }),
  Express: expressRouter,
  'new URL()': urlRouter,
  nginx: nginx === undefined ? undefined : (owner) => nginxRouter(owner, nginx, { mergesSlashes: true }),
  'nginx without merge_slashes':
    nginx === undefined ? undefined : (owner) => nginxRouter(owner, nginx, { mergesSlashes: false }),
}

/** Decides by a single reading: the path as sent. */
const decideAsSent: Decide = (edge, path) => {
  const reading = asSent(path)
  return reading === undefined ? undefined : edge.route(reading)?.id
}

/** Decides by another single reading: the path decoded, without dot segments. */
const decideCanonical: Decide = (edge, path) => {
  try {
    return edge.route(new URL(`http://a.test${decodeURIComponent(path).replaceAll(/[?#\\]/g, '-')}`).pathname)?.id
  } catch {
    return undefined
  }
}

for (const [name, start] of Object.entries(routers)) {
  test(`no path that an open route forwards reaches a guarded handler of ${name} (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
    if (!start) {
      // A short report does not show skipped tests.
      t.diagnostic(`nginx is not installed, so ${name} is left out`)
      t.skip()
      return
    }
    const router = await start(t)
    const { findings, refused, answered } = await runPaths({ routers: [router], seed, pairs: PAIRS })
    assert.deepEqual(findings, [])
    assert.ok(refused > PAIRS / 10, `only ${refused} paths were refused`)
    assert.ok((answered.get(router.name) ?? 0) > PAIRS / 2, 'hardly any path reached a handler')
    // Some paths must fool a router when the edge considers only one reading, or this test would prove nothing.
    const fooled = await Promise.all(
      [decideAsSent, decideCanonical].map((decide) => runPaths({ routers: [router], seed, pairs: PAIRS, decide })),
    )
    assert.ok(
      fooled.some((tally) => tally.findings.length > 0),
      'no path would have got past the guard',
    )
  })
}
