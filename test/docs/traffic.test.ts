/** The pages about what happens to traffic, followed from top to bottom. */
import assert from 'node:assert/strict'
import { after } from 'node:test'
import { run } from '../../src/cli/program.ts'
import { testTerminal } from '../../src/cli/testing/test-terminal.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { visit } from '../support/visitor.ts'
import { followPage } from './follow.ts'
import type { Reader } from './reader.ts'

const platform = startPlatform()
after(async () => (await platform).stop())

let edges = 0

/** Creates an HTTPS edge with a route, under the names that the pages use. */
async function edgeWithRoute(reader: Reader): Promise<Readonly<Record<string, never>>> {
  const { url, apiKey, admin } = await platform
  const { id: EDGE } = await admin.create('/edges/https', { hostports: [`shop-${edges++}.example.com:443`] })
  const { id: ROUTE } = await admin.create(`/edges/https/${EDGE}/routes`, { match_type: 'path_prefix', match: '/' })
  reader.meet({ API: url, KEY: apiKey, EDGE, ROUTE })
  return {}
}

/** At most one of these modules is enabled. */
const isEnabled = (output: string) => assert.match(output, /"enabled":true.*^curl was answered 200$/ms)
const disable = (name: string) => (reader: Reader) => {
  const words = `-X DELETE "$API/edges/https/$EDGE/routes/$ROUTE/${name}"`
  return reader.run(`curl ${words} -H "Authorization: Bearer $KEY" -H 'Service-Version: 2'`)
}

followPage('docs/logins.md', {
  prepare: edgeWithRoute,
  before: { 'curl -X PUT "$API/edges/https/$EDGE/routes/$ROUTE/oauth"': disable('oidc') },
  checks: {
    'curl -X PUT "$API/edges/https/$EDGE/routes/$ROUTE/oidc"': isEnabled,
    'curl -X PUT "$API/edges/https/$EDGE/routes/$ROUTE/oauth"': isEnabled,
    'curl -X PUT "$API/edges/https/$EDGE/routes/$ROUTE/saml"': (output) => assert.match(output, /"enabled":false/),
  },
})

followPage('docs/inspect.md', {
  async prepare(reader) {
    const { url, apiKey, admin, ca, httpsPort } = await platform
    const name = `shop-${edges++}.localhost`
    const { id: EDGE } = await admin.create('/edges/https', { hostports: [`${name}:443`] })
    const backend = await admin.create('/backends/http_response', { body: 'hello' })
    const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
    await admin.create(`/edges/https/${EDGE}/routes`, route)
    let EXCHANGE = ''
    await until('an exchange is listed', async () => {
      await visit(`https://${name}:${httpsPort}`, { ca }, { path: '/cart' }).catch(() => {})
      const [found] = (await admin.get(`/exchanges?edge_id=${EDGE}&status=200`)).exchanges
      EXCHANGE = found?.id ?? ''
      return EXCHANGE !== ''
    })
    reader.meet({ API: url, KEY: apiKey, EDGE, EXCHANGE })
    return {}
  },
  checks: {
    'curl "$API/exchanges?': (output) => assert.match(output, /"path":"\/cart"/),
    'curl -X POST "$API/captures"': (output) => assert.match(output, /"duration":300/),
    'curl -X POST "$API/exchanges/$EXCHANGE/replay"': (output) => assert.match(output, /"replay_of":"ex_/),
    'curl "$API/exchanges/$EXCHANGE/curl"': (output) => assert.match(output, /"command":.*"version":"1\.2"/s),
  },
})

followPage('docs/policy.md', {
  prepare: edgeWithRoute,
  testedBy: { yaml: 'test/e2e/explain-docs.test.ts' },
  checks: {
    'curl -X PUT "$API/edges/https/$EDGE/routes/$ROUTE/policy"': isEnabled,
    'curl "$API/policy/explain"': (output) => assert.match(output, /"verdict":"\w+"/),
  },
})

followPage('docs/expressions.md', {
  checks: {
    async 'req.url.path.startsWith'(text) {
      const expressions = text.trim().split('\n')
      assert.ok(expressions.length > 2)
      const rules = expressions.map((each) => ({ expressions: [each], actions: [{ type: 'deny' }] }))
      const cases = [{ request: { url: '/admin' }, expect: { status_code: 403 } }]
      const terminal = testTerminal({ input: JSON.stringify({ policy: { on_http_request: rules }, cases }) })
      assert.equal(await run(['policy', 'test', '-'], terminal), 0, terminal.printed.err + terminal.printed.out)
    },
  },
})

followPage('docs/errors.md', {
  checks: {
    async '{\n  "error_code"'(text) {
      const { admin } = await platform
      const hostports = ['app.example.com:443']
      await admin.create('/edges/https', { hostports })
      const { body } = await admin.send('POST', '/edges/tls', { body: { hostports } })
      const answer = JSON.parse(text) as { details: { operation_id: string } }
      assert.match(body.details.operation_id, /^op_/)
      assert.deepEqual({ ...body, details: { ...body.details, operation_id: 'op_…' } }, answer)
    },
  },
})

followPage('docs/migrate.md', { testedBy: { hcl: 'test/outside/terraform/run.ts' } })
