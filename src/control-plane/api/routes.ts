/** The route table: every operation of the API, derived from the registries. Server, document and tests all use it. */
import type { TObject, TSchema } from 'typebox'
import { closed, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { plural } from '../../lib/text/plural.ts'
import type { AgentCommand } from '../../model/presence.ts'
import { formsOf, type ModuleForm } from '../../modules/forms.ts'
import { modulesAt } from '../../modules/index.ts'
import type { Module } from '../../modules/module.ts'
import { brokenEdges } from '../resources/broken-edges.ts'
import { curlView, exchanges, harView, replayForm } from '../resources/exchanges.ts'
import { resources } from '../resources/index.ts'
import { policyExplanations } from '../resources/policy-explanations.ts'
import type { Resource, ResourceAction, Verb } from '../resources/resource.ts'
import { trafficHistory } from '../resources/traffic-history.ts'
import type { Period } from '../traffic/traffic-counts.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** What a route does, and so which handler of `operations.ts` serves it. */
export type RouteAction =
  | Verb
  | 'clear'
  | 'put_module'
  | 'get_module'
  | 'delete_module'
  | 'command'
  | ResourceAction['name']
  | 'explain'
  | 'traffic'
  | 'broken'
  | 'replay'
  | 'har'
  | 'stream'
  | 'curl'

export interface ApiRoute {
  readonly method: Method
  /** Parameters are written as `{id}`. */
  readonly path: string
  /** Unique name: `create_api_key`. */
  readonly operation: string
  readonly summary: string
  readonly action: RouteAction
  readonly resource: Resource
  readonly module?: Module
  /** The spelling in which the route reads and writes the module. */
  readonly form?: ModuleForm
  readonly command?: AgentCommand
  /** How far a history goes back. */
  readonly period?: Period
  /** The field that is cleared. */
  readonly field?: string
  readonly status: 200 | 201 | 204
  /** Schema of the body; null when none is taken. */
  readonly body: TObject | null
  /** Schema of the answer; null when it has no body. */
  readonly response: TSchema | null
}

/** Every route of the API, in the order of the document. */
export function routeTable(): readonly ApiRoute[] {
  return [
    ...resources.flatMap((resource) => [
      ...resourceRoutes(resource),
      ...routesOfOtherName(resource),
      ...clearRoutes(resource),
      ...moduleRoutes(resource),
      ...commands(resource),
      ...actions(resource),
    ]),
    ...ofExchanges(exchanges),
    explain(policyExplanations),
    ...histories(trafficHistory),
    broken(brokenEdges),
  ]
}

function broken(resource: Resource): ApiRoute {
  return {
    method: 'GET',
    path: resource.path,
    operation: 'list_broken_edges',
    summary: 'List edges and routes that refuse traffic, and why',
    action: 'broken',
    resource,
    status: 200,
    body: null,
    response: resource.view,
  }
}

function histories(resource: Resource): ApiRoute[] {
  const about: Record<Period, string> = { minutes: 'of the last 15 minutes', day: 'of the last day' }
  return Object.entries(about).map(([name, time]) => ({
    method: 'GET',
    path: `${resource.path}/${name}`,
    operation: `get_traffic_${name}`,
    summary: `Get the numbers ${time}`,
    action: 'traffic',
    resource,
    period: name as Period, // a key of `about`
    status: 200,
    body: null,
    response: resource.view,
  }))
}

function explain(resource: Resource): ApiRoute {
  return {
    method: 'POST',
    path: resource.path,
    operation: 'explain_policy',
    summary: 'Explain what would happen to a request or connection',
    action: 'explain',
    resource,
    status: 200,
    body: resource.create,
    response: resource.view,
  }
}

function ofExchanges(resource: Resource): ApiRoute[] {
  return [
    {
      method: 'GET',
      path: `${resource.path}/stream`,
      operation: 'stream_exchanges',
      summary: 'Follow exchanges as they come, as server-sent events',
      action: 'stream',
      resource,
      status: 200,
      body: null,
      response: null,
    },
    {
      method: 'POST',
      path: `${resource.path}/{id}/replay`,
      operation: 'replay_exchange',
      summary: 'Send the request of an exchange again',
      action: 'replay',
      resource,
      status: 201,
      body: replayForm,
      response: resource.view,
    },
    {
      method: 'GET',
      path: `${resource.path}/{id}/har`,
      operation: 'get_exchange_har',
      summary: 'Get an exchange as a HAR document',
      action: 'har',
      resource,
      status: 200,
      body: null,
      response: harView,
    },
    {
      method: 'GET',
      path: `${resource.path}/{id}/curl`,
      operation: 'get_exchange_curl',
      summary: 'Get the request of an exchange as a command for curl',
      action: 'curl',
      resource,
      status: 200,
      body: null,
      response: curlView,
    },
  ]
}

function routesOfOtherName(resource: Resource): ApiRoute[] {
  if (!resource.otherName) return []
  const { name, ...other } = resource.otherName
  return resourceRoutes({ ...resource, ...other }, name)
}

function resourceRoutes(resource: Resource, name = resource.kind): ApiRoute[] {
  const { noun, path, verbs, create, update, view } = resource
  const one = `${path}/{id}`
  const all: Record<Verb, Omit<ApiRoute, 'action' | 'resource'>> = {
    create: {
      method: 'POST',
      path,
      operation: `create_${name}`,
      summary: `Create ${article(noun)}`,
      status: 201,
      body: create,
      response: view,
    },
    list: {
      method: 'GET',
      path,
      operation: `list_${plural(name)}`,
      summary: `List ${plural(noun)}`,
      status: 200,
      body: null,
      response: listView(resource),
    },
    get: {
      method: 'GET',
      path: one,
      operation: `get_${name}`,
      summary: `Get ${article(noun)}`,
      status: 200,
      body: null,
      response: view,
    },
    update: {
      method: 'PATCH',
      path: one,
      operation: `update_${name}`,
      summary: `Update ${article(noun)}`,
      status: 200,
      body: update,
      response: view,
    },
    delete: {
      method: 'DELETE',
      path: one,
      operation: `delete_${name}`,
      summary: `Delete ${article(noun)}`,
      status: 204,
      body: null,
      response: null,
    },
  }
  return verbs.map((verb) => ({ ...all[verb], action: verb, resource }))
}

function clearRoutes(resource: Resource): ApiRoute[] {
  return resource.clears.map(({ name, field }) => ({
    method: 'DELETE',
    path: `${resource.path}/{id}/${name}`,
    operation: `delete_${resource.kind}_${name}`,
    summary: `Clear ${name} of ${article(resource.noun)}`,
    action: 'clear',
    resource,
    field,
    status: 204,
    body: null,
    response: null,
  }))
}

function moduleRoutes(resource: Resource): ApiRoute[] {
  const { place } = resource
  if (!place) return []
  return modulesAt(place).flatMap((module) =>
    formsOf(module, place).flatMap((form) => formRoutes({ resource, module, form })),
  )
}

function formRoutes(of: Required<Pick<ApiRoute, 'resource' | 'module' | 'form'>>): ApiRoute[] {
  const { kind, noun, path } = of.resource
  const { name, body, view } = of.form
  const base = { ...of, path: `${path}/{id}/${name}` }
  const what = `${name} of ${article(noun)}`
  return [
    {
      ...base,
      method: 'PUT',
      action: 'put_module',
      operation: `put_${kind}_${name}`,
      summary: `Replace ${what}`,
      status: 200,
      body,
      response: view,
    },
    {
      ...base,
      method: 'GET',
      action: 'get_module',
      operation: `get_${kind}_${name}`,
      summary: `Get ${what}`,
      status: 200,
      body: null,
      response: view,
    },
    {
      ...base,
      method: 'DELETE',
      action: 'delete_module',
      operation: `delete_${kind}_${name}`,
      summary: `Delete ${what}`,
      status: 204,
      body: null,
      response: null,
    },
  ]
}

function commands(resource: Resource): ApiRoute[] {
  return resource.commands.map((command) => ({
    method: 'POST',
    path: `${resource.path}/{id}/${command}`,
    operation: `${command}_${resource.kind}`,
    summary: `Tell the agent of ${article(resource.noun)} to ${command}`,
    action: 'command',
    resource,
    command,
    status: 204,
    // D43: any body is accepted and ignored.
    body: null,
    response: null,
  }))
}

function actions(resource: Resource): ApiRoute[] {
  return (resource.actions ?? []).map(({ name, about }) => ({
    method: 'POST',
    path: `${resource.path}/{id}/${name}`,
    operation: `${name}_${resource.kind}`,
    summary: about,
    action: name,
    resource,
    status: 204,
    body: null,
    response: null,
  }))
}

function listView({ listKey, noun, view }: Resource): TObject {
  return closed({
    [listKey ?? '']: Type.Array(view, { description: `The ${plural(noun)}, newest first.` }),
    uri: Type.String({ description: 'Address of this list.' }),
    next_page_uri: nullable(Type.String({ description: 'Address of the next page; null at the end.' })),
  })
}

function article(noun: string): string {
  return /^([aeio]|API|SSH|HTTP)/i.test(noun) ? `an ${noun}` : `a ${noun}`
}
