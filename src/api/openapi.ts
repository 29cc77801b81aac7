/** The OpenAPI 3.1 document, from the same schemas that check bodies and shape answers. */
import type { TSchema } from 'typebox'
import { plural } from '../lib/text/plural.ts'
import { errors } from '../model/errors.ts'
import { resources } from '../resources/index.ts'
import { policyExplanations } from '../resources/policy-explanations.ts'
import type { Resource } from '../resources/resource.ts'
import type { Route } from './routes.ts'

export type OpenApiDocument = Readonly<Record<string, unknown>>

/** What there is to read about. */
const documented: readonly Resource[] = [...resources, policyExplanations]

/** Describes `routes` as a document; `serverUrl` is where callers reach them. */
export function openApiDocument(
  routes: readonly Route[],
  { version, sshHostKey }: { readonly version: string; readonly sshHostKey: string },
): OpenApiDocument {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postern management API',
      version,
      description: `Manages API keys, credentials, agent sessions, tunnels, edges and their modules. Every call sends \`Authorization: Bearer <API key>\` and \`Service-Version: 2\`. The SSH gateway shows the host key \`${sshHostKey}\`.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ api_key: [] }],
    tags: documented.map(({ noun, about }) => ({ name: title(noun), description: about })),
    paths: paths(routes),
    components: {
      securitySchemes: {
        api_key: { type: 'http', scheme: 'bearer', description: 'The `token` of an API key.' },
      },
      parameters: { version: versionParameter },
      schemas: { error: errorSchema, ...Object.fromEntries(documented.map(({ kind, view }) => [kind, view])) },
      responses: { error: { description: 'What went wrong, and what to do.', content: json(ref('schemas', 'error')) } },
    },
  }
}

const versionParameter = {
  name: 'Service-Version',
  in: 'header',
  required: true,
  schema: { type: 'string', enum: ['2'] },
  description: 'The version of this API.',
}

const errorSchema = {
  type: 'object',
  required: ['error_code', 'status_code', 'msg', 'details'],
  additionalProperties: false,
  properties: {
    error_code: {
      type: 'string',
      description: 'A stable name.',
      enum: Object.keys(errors).map((code) => `ERR_${code}`),
    },
    status_code: { type: 'integer', description: 'The HTTP status.' },
    msg: { type: 'string', description: 'What is wrong, and what to do.' },
    details: {
      type: 'object',
      additionalProperties: { type: 'string' },
      properties: { operation_id: { type: 'string', description: 'Finds this call in the log of the server.' } },
    },
  },
}

function paths(routes: readonly Route[]): Record<string, Record<string, unknown>> {
  const all: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const shared = { parameters: [ref('parameters', 'version'), ...pathParameters(route)] }
    all[route.path] = { ...(all[route.path] ?? shared), [route.method.toLowerCase()]: operation(route) }
  }
  return all
}

function operation({ operation, summary, action, resource, status, body, response, command }: Route) {
  const answer = response && (response === resource.view ? ref('schemas', resource.kind) : response)
  return {
    operationId: operation,
    summary,
    tags: [title(resource.noun)],
    ...(action === 'list' && { parameters: pageParameters(resource) }),
    ...(body && { requestBody: bodyOf(asSent(body)) }),
    ...(command && { requestBody: { required: false, content: json({ type: 'object' }) } }),
    responses: {
      [status]: { description: said[status], ...(answer && { content: json(answer) }) },
      default: ref('responses', 'error'),
    },
  }
}

const said = { 200: 'Done.', 201: 'Created.', 204: 'Done; there is nothing to say.' } as const

function pathParameters({ path, resource }: Route) {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
    description:
      name === 'id' ? `Id of the ${resource.noun}: \`${resource.prefix}…\`.` : 'Id of the one it belongs to.',
  }))
}

function pageParameters({ noun, prefix }: Resource) {
  return [
    {
      name: 'limit',
      in: 'query',
      schema: { type: 'integer', minimum: 1, maximum: 100, default: 100 },
      description: 'How many to give at most.',
    },
    {
      name: 'before_id',
      in: 'query',
      schema: { type: 'string' },
      description: `Only ${plural(noun)} created before this id: \`${prefix}…\`.`,
    },
  ]
}

/** `API key` to `API keys`, `tunnel group backend` to `Tunnel group backends`. */
function title(noun: string): string {
  const all = plural(noun)
  return all.charAt(0).toUpperCase() + all.slice(1)
}

function bodyOf(schema: TSchema & { readonly required?: readonly string[] }) {
  return { required: schema.required !== undefined && schema.required.length > 0, content: json(schema) }
}

/** A form as callers fill it in: what has a default is required of the checked value only, at any depth. */
function asSent<T>(node: T): T {
  if (Array.isArray(node)) return node.map(asSent) as T
  if (typeof node !== 'object' || node === null) return node
  const copy: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(node)) copy[name] = asSent(value)
  const { required, properties } = copy as { required?: unknown; properties?: Record<string, { default?: unknown }> }
  if (Array.isArray(required) && properties) {
    copy.required = required.filter((name) => properties[name]?.default === undefined)
  }
  // The same keys, and the same types behind them.
  return copy as T
}

function json(schema: TSchema) {
  return { 'application/json': { schema } }
}

function ref(section: string, name: string) {
  return { $ref: `#/components/${section}/${name}` }
}
