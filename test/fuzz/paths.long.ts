/** The whole of `paths.test.ts`, for `npm run fuzz`: a million pairs of a router and a path that an edge forwards to it. */
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { expressRouter, fastifyRouter, findNginx, nginxRouter, urlRouter } from './path-routers.ts'
import { runPaths } from './paths.ts'

const PAIRS = 1_000_000
const seed = Number(process.env.POSTERN_FUZZ_SEED ?? randomInt(2 ** 31))

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
  const { pairs, refused, answered, findings } = await runPaths({ routers, seed, pairs: PAIRS })
  const counts = [...answered].map(([name, count]) => `${name} ${count}`)
  t.diagnostic(`${pairs} pairs, ${refused} paths refused; answered by handlers: ${counts.join(', ')}`)
  assert.deepEqual(findings, [])
  assert.ok(pairs >= PAIRS && refused > PAIRS / routers.length / 5)
})
