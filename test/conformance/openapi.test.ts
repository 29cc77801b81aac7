/** The API document: valid OpenAPI 3.1, exactly the existing routes, and schemas that real answers fit. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { routeTable } from '../../src/control-plane/api/routes.ts'
import { resources } from '../../src/control-plane/resources/index.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { createSample, sampleBody, sampleModule } from './samples.ts'
import { eachTarget } from './target.ts'
import { kindsOn } from './ways-to-the-store.ts'

/** Part 4 of the contract, row by row. */
const contract = [
  ...verbs('/api_keys', 'POST GET', 'GET PATCH DELETE'),
  ...verbs('/ssh_credentials', 'POST GET', 'GET PATCH DELETE'),
  ...verbs('/tunnel_sessions', 'GET', 'GET'),
  'POST /tunnel_sessions/{id}/restart',
  'POST /tunnel_sessions/{id}/stop',
  'POST /tunnel_sessions/{id}/update',
  ...verbs('/tunnels', 'GET', 'GET'),
  ...verbs('/edges/tcp', 'POST GET', 'GET PATCH'),
  ...verbs('/edges/tls', 'POST GET', 'GET PATCH DELETE'),
  ...verbs('/edges/tcp/{id}/ip_restriction', 'PUT GET DELETE'),
  ...verbs('/edges/tls/{id}/tls_termination', 'PUT GET DELETE'),
  ...verbs('/edges/https/{id}/tls_termination', 'PUT GET DELETE'),
  ...verbs('/edges/https/{edge_id}/routes/{id}/oidc', 'PUT GET DELETE'),
  ...verbs('/edges/https/{edge_id}/routes/{id}/request_headers', 'PUT GET DELETE'),
  ...verbs('/edges/https/{edge_id}/routes/{id}/user_agent_filter', 'PUT GET DELETE'),
]

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

eachTarget((target) => {
  let document: Json
  let check: (schema: Json, value: unknown, what: string) => void
  before(async () => {
    const anonymous = new ApiClient(target.url, null)
    document = (await anonymous.send('GET', '/openapi.json', { headers: { 'service-version': '' } })).body
    const ajv = new Ajv2020({ strict: false, allErrors: true, code: { optimize: false } })
    ajv.addSchema(document, 'document')
    // Most answers share a schema, and compiling one takes longer than everything else here.
    const compiled = new Map<string, ValidateFunction>()
    check = (schema, value, what) => {
      const text = JSON.stringify(schema)
      const validate = compiled.get(text) ?? ajv.compile(absolute(schema))
      compiled.set(text, validate)
      assert.ok(validate(value), `${what}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`)
    }
  })

  describe('the document', () => {
    // It does not depend on the store, so one is enough.
    if (target.name === 'postgres') return

    test('has the parts of OpenAPI 3.1', () => {
      assert.match(document.openapi, /^3\.1\.\d+$/)
      for (const field of ['title', 'version']) assert.equal(typeof document.info[field], 'string', field)
      const known = 'openapi info jsonSchemaDialect servers paths webhooks components security tags externalDocs'
      for (const key of Object.keys(document)) assert.ok(known.split(' ').includes(key) || key.startsWith('x-'), key)
      assert.equal(document.components.securitySchemes.api_key.type, 'http')
      assert.equal(document.components.securitySchemes.api_key.scheme, 'bearer')
      for (const need of document.security) {
        for (const name of Object.keys(need)) assert.ok(document.components.securitySchemes[name], name)
      }
      const names = document.tags.map((tag: Json) => tag.name)
      assert.equal(new Set(names).size, names.length)
    })

    test('describes exactly the routes of the table', () => {
      const described = operations(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`)
      const mounted = routeTable().map(({ method, path }) => `${method} ${path}`)
      assert.deepEqual(described.sort(), mounted.sort())
    })

    test('has every operation of the contract', () => {
      const described = new Set(operations(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`))
      assert.deepEqual(
        contract.filter((each) => !described.has(each)),
        [],
      )
    })

    test('gives every operation a name, its parameters, answers and tags', () => {
      const ids = new Set<string>()
      const tags = new Set(document.tags.map((tag: Json) => tag.name))
      for (const { method, path, operation, shared } of operations(document)) {
        const where = `${method} ${path}`
        assert.match(operation.operationId, /^[a-z0-9_]+$/, where)
        assert.ok(!ids.has(operation.operationId), `${operation.operationId} twice`)
        ids.add(operation.operationId)
        for (const tag of operation.tags) assert.ok(tags.has(tag), `${where}: ${tag}`)
        const parameters = [...shared, ...(operation.parameters ?? [])].map((each) => resolved(document, each))
        const inPath = parameters.filter((each) => each.in === 'path')
        assert.deepEqual(
          inPath.map((each) => `{${each.name}}`).sort(),
          (path.match(/\{\w+\}/g) ?? []).toSorted(),
          where,
        )
        for (const each of parameters) {
          assert.ok(['path', 'query', 'header', 'cookie'].includes(each.in) && each.schema, `${where} ${each.name}`)
        }
        for (const each of inPath) assert.equal(each.required, true)
        assert.equal(new Set(parameters.map((each) => `${each.in} ${each.name}`)).size, parameters.length)
        assert.ok(Object.keys(operation.responses).length > 0)
        for (const [status, response] of Object.entries<Json>(operation.responses)) {
          assert.match(status, /^([1-5](\d\d|XX)|default)$/)
          assert.equal(typeof resolved(document, response).description, 'string', `${where} ${status}`)
        }
      }
    })

    test('has no dangling references', () => {
      const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => String(ref))
      assert.ok(refs.length > 0)
      for (const $ref of refs) assert.ok(resolved(document, { $ref }), $ref)
    })

    test('holds schemas of JSON Schema 2020-12', () => {
      const ajv = new Ajv2020({ strict: false })
      for (const schema of schemasIn(document)) assert.ok(ajv.validateSchema(schema), ajv.errorsText(ajv.errors))
    })

    test('can be read by pages of other origins', async () => {
      const anonymous = new ApiClient(target.url, null)
      const answer = await anonymous.send('GET', '/openapi.json', { headers: { origin: 'https://page.example.com' } })
      assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
      assert.equal(answer.headers.get('access-control-allow-origin'), 'https://page.example.com')
    })
  })

  describe('answers fit the document:', () => {
    const kindsHere = new Set<string>(kindsOn(target))
    for (const resource of resources) {
      if (resource.verbs.includes('update') && !kindsHere.has(resource.kind)) continue
      test(resource.noun, async () => {
        const answers = (method: string, path: string, status: number) =>
          document.paths[path][method].responses[status].content['application/json'].schema
        const { path, verbs: known } = resource
        if (known.includes('list')) check(answers('get', path, 200), await target.api.get(path), `GET ${path}`)
        if (!known.includes('update')) return

        const one = `${path}/{id}`
        for (const minimal of [false, true]) {
          const body = await sampleBody(target.api, resource)
          check(document.paths[path].post.requestBody.content['application/json'].schema, body, `body of POST ${path}`)
          const { made, path: at } = await createSample(target.api, resource)
          check(answers('post', path, 201), made, `POST ${path}`)
          for (const [name, { put }] of moduleRows(document, one)) {
            const config = await sampleModule(target.api, name)
            if (!minimal) check(put.requestBody.content['application/json'].schema, config, `body of PUT ${name}`)
            const module = await target.api.put(`${at}/${name}`, config)
            check(answers('put', `${one}/${name}`, 200), module, `PUT ${name}`)
            check(answers('get', `${one}/${name}`, 200), await target.api.get(`${at}/${name}`), `GET ${name}`)
            if (minimal) await target.api.delete(`${at}/${name}`)
          }
          check(answers('get', one, 200), await target.api.get(at), `GET ${one}`)
          check(answers('patch', one, 200), await target.api.update(at, {}), `PATCH ${one}`)
        }
        if (known.includes('list')) check(answers('get', path, 200), await target.api.get(path), `GET ${path}`)
      })
    }

    if (target.name === 'postgres') return

    test('fields that the contract makes optional are optional', () => {
      for (const path of ['/api_keys', '/edges/tcp', '/edges/tls']) {
        const { requestBody } = document.paths[path].post
        assert.equal(requestBody.required, false, `POST ${path} needs no body`)
        check(requestBody.content['application/json'].schema, {}, `POST ${path}`)
      }
      for (const name of ['oidc', 'request_headers', 'user_agent_filter']) {
        const { requestBody } = document.paths[`/edges/https/{edge_id}/routes/{id}/${name}`].put
        check(requestBody.content['application/json'].schema, { enabled: false }, `PUT ${name}`)
      }
      const { requestBody } = document.paths['/edges/https/{id}/tls_termination'].put
      check(requestBody.content['application/json'].schema, { min_version: '1.2' }, 'PUT tls_termination')
    })

    test('errors', async () => {
      const schema = { $ref: '#/components/schemas/error' }
      const anonymous = new ApiClient(target.url, null)
      for (const answer of [
        await target.api.send('GET', '/nowhere'),
        await target.api.send('PUT', '/api_keys'),
        await target.api.send('POST', '/api_keys', { body: '{' }),
        await target.api.send('GET', '/api_keys?limit=0'),
        await anonymous.send('GET', '/api_keys'),
      ]) {
        check(schema, answer.body, `${answer.status}`)
      }
    })
  })
})

function verbs(path: string, onAll: string, onOne = ''): string[] {
  const each = (words: string, at: string) =>
    words
      .split(' ')
      .filter(Boolean)
      .map((method) => `${method} ${at}`)
  return [...each(onAll, path), ...each(onOne, `${path}/{id}`)]
}

interface Described {
  readonly method: string
  readonly path: string
  readonly operation: Json
  readonly shared: readonly Json[]
}

function operations(document: Json): Described[] {
  return Object.entries<Json>(document.paths).flatMap(([path, item]) => {
    assert.match(path, /^\/[a-z_{}/]*$/)
    const allowed = new Set(['parameters', 'summary', 'description', 'servers', ...METHODS])
    for (const key of Object.keys(item)) assert.ok(allowed.has(key), `${path} has ${key}`)
    return METHODS.filter((method) => item[method]).map((method) => ({
      method,
      path,
      operation: item[method],
      shared: item.parameters ?? [],
    }))
  })
}

/** The modules under the path of one resource, by name, as the document has them. */
function moduleRows(document: Json, one: string): [name: string, item: Json][] {
  return Object.entries<Json>(document.paths)
    .filter(([path, item]) => path.startsWith(`${one}/`) && item.put)
    .map(([path, item]) => [path.slice(one.length + 1), item])
}

function resolved(document: Json, value: Json): Json {
  if (!value?.$ref) return value
  const parts: string[] = value.$ref.replace(/^#\//, '').split('/')
  return parts.reduce((at: Json, part) => at?.[part], document)
}

/** The same schema with its references pointing into the document. */
function absolute(schema: Json): Json {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"document#'))
}

function schemasIn(document: Json): Json[] {
  const bodies = operations(document).flatMap(({ operation }) => [
    operation.requestBody,
    ...Object.values<Json>(operation.responses),
    ...(operation.parameters ?? []),
  ])
  const found = bodies.flatMap((each) => [each?.schema, each?.content?.['application/json']?.schema])
  return [...Object.values(document.components.schemas), ...found.filter(Boolean)]
}
