/**
 * The long form of `paths.test.ts`, for `npm run fuzz`: a million pairs of a router and a path that an edge forwards to
 * it, and as many more as fit into `POSTERN_FUZZ_SECONDS`, with the seeds that follow.
 */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { expressRouter, fastifyRouter, findNginx, nginxRouter, urlRouter } from './path-routers.ts'
import { runPaths } from './paths.ts'

const PAIRS = 1_000_000
const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))
const seconds = Number(process.env.POSTERN_FUZZ_SECONDS ?? 0)

test(`${PAIRS} pairs of a router and a path (POSTERN_FUZZ_SEED=${seed})`, async (t) => {
  const nginx = findNginx()
  const routers = [
    await fastifyRouter(t),
    await fastifyRouter(t, { isLenient: true }),
    await expressRouter(t),
    await urlRouter(t),
  ]
  if (nginx === undefined) t.diagnostic('nginx is not installed, so its router is left out')
  else
    routers.push(
      await nginxRouter(t, nginx, { mergesSlashes: true }),
      await nginxRouter(t, nginx, { mergesSlashes: false }),
    )
  const until = performance.now() + seconds * 1000
  let next = seed
  do {
    const { pairs, refused, answered, findings } = await runPaths({ routers, seed: next, pairs: PAIRS })
    const counts = [...answered].map(([name, count]) => `${name} ${count}`)
    t.diagnostic(`seed ${next}: ${pairs} pairs, ${refused} paths refused; handlers: ${counts.join(', ')}`)
    assert.deepEqual(findings, [])
    assert.ok(pairs >= PAIRS && refused > PAIRS / routers.length / 5)
    next++
  } while (performance.now() < until)
})
