/** The examples of the API document work: each is sent unchanged, except that existing ids replace those in it. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { resources } from '../../../src/control-plane/resources/index.ts'
import { tlsPair } from '../../conformance/tls-pair.ts'
import type { Json } from '../../support/api-client.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { fetchDocument, operationsOf } from './document.ts'

/** Resources without an example, since it would contain a publicly known private key. */
const WITHOUT = ['/tls_certificates']

let platform: Platform
let document: Json
before(async () => {
  platform = await startPlatform()
  document = await fetchDocument(platform.url)
})
after(() => platform.stop())

test('every body has an example, except those with a private key', () => {
  const bare = operationsOf(document)
    .filter(({ operation }) => operation.requestBody && !/^(restart|stop|update)_tunnel/.test(operation.operationId))
    .filter(({ operation }) => content(operation).example === undefined)
  assert.deepEqual(
    bare.map(({ path }) => path),
    WITHOUT,
  )
})

/** Paths of the resources created from the examples, by id prefix. */
const made = new Map<string, string>()

for (const { kind, path, prefix } of resources.filter(({ verbs }) => verbs.includes('update'))) {
  test(`the examples of ${kind} can be sent`, async () => {
    const at = await madeAt(prefix)
    const { example: change } = content(document.paths[`${path}/{id}`].patch)
    const changed = await platform.admin.update(at, await withIds(change))
    for (const [field, value] of Object.entries<Json>(change)) {
      if (typeof value === 'string') assert.equal(changed[field], value, field)
    }
    for (const [module, item] of modulesOf(`${path}/{id}`)) {
      await platform.admin.put(`${at}/${module}`, await withIds(content(item.put).example))
      // A route has one login, and one policy in either spelling.
      await platform.admin.delete(`${at}/${module}`)
    }
  })
}

test('the examples of service users and of a dry run can be sent', async () => {
  const api = platform.admin
  const { id } = await api.create('/service_users', {
    ...content(document.paths['/service_users'].post).example,
    name: 'ci',
  })
  await api.update(`/service_users/${id}`, {
    ...content(document.paths['/service_users/{id}'].patch).example,
    name: 'cd',
  })
  const asked = content(document.paths['/policy/explain'].post).example
  const answer = await api.send('POST', '/policy/explain', { body: asked })
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.text, /deny/)
})

/** The path of one resource of a kind, created from its example if there is none yet. */
async function madeAt(prefix: string): Promise<string> {
  const known = made.get(prefix)
  if (known !== undefined) return known
  const resource = resources.find((each) => each.prefix === prefix)
  assert.ok(resource, prefix)
  const edge = resource.parent?.in === 'path' ? idOf(await madeAt('edghts_')) : ''
  const path = resource.path.replace('{edge_id}', edge)
  const example = content(document.paths[resource.path].post).example ?? tlsPair
  const at = `${path}/${(await platform.admin.create(path, await withIds(example))).id}`
  made.set(prefix, at)
  return at
}

/** An example with its ids replaced by existing ones. */
async function withIds(example: Json): Promise<Json> {
  let text = JSON.stringify(example)
  for (const [id, prefix = ''] of [...text.matchAll(/\b([a-z]+_)[0-9A-Za-z]{27}\b/g)]) {
    text = text.replaceAll(id, idOf(await madeAt(prefix)))
  }
  return JSON.parse(text)
}

function idOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function content(operation: Json): Json {
  return operation.requestBody.content['application/json']
}

function modulesOf(one: string): [name: string, item: Json][] {
  return Object.entries<Json>(document.paths)
    .filter(([path, item]) => path.startsWith(`${one}/`) && item.put)
    .map(([path, item]) => [path.slice(one.length + 1), item])
}
