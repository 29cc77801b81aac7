/** The error reference, generated from the error tables: for callers of the API, for agents, and for visitors. */
import { agentErrors } from '../model/agent-errors.ts'
import { errors } from '../model/errors.ts'
import { visitorErrors } from '../model/visitor-errors.ts'

export function errorReference(): string {
  const rows = sortByCode(errors).map(
    ([code, { status, ngrok, text }]) => `| \`ERR_${code}\` | ${status} | ${ngrok} | ${text} |`,
  )
  const visitorRows = sortByCode(visitorErrors).map(
    ([code, { status, ngrok, text, when, remedy }]) =>
      `| \`ERR_${code}\` | ${status} | ${ngrok} | ${text} | ${when} | ${remedy} |`,
  )
  const agentRows = Object.entries(agentErrors).map(
    ([number, { when, remedy }]) => `| \`ERR_NGROK_${number}\` | ${when} | ${remedy} |`,
  )
  return `# Errors

<!-- Made from src/model/errors.ts, agent-errors.ts and visitor-errors.ts by \`npm run docs\`; change it there. -->

Codes of the [management API](#the-management-api), numbers that [agents](#what-agents-are-told) are told, and codes that
[visitors](#what-visitors-see) of public addresses see.

## The management API

Every error of the management API has the same body, whatever went wrong:

\`\`\`json
{
  "error_code": "ERR_HOSTPORT_IN_USE",
  "status_code": 409,
  "msg": "\`hostports\`: \`app.example.com:443\` belongs to another edge or to an agent ingress; remove it there first",
  "details": { "operation_id": "op_…", "field": "hostports[0]" }
}
\`\`\`

\`error_code\` is stable: scripts may rely on it. \`msg\` says what is wrong with which field and what to do about it; it is
written for people and may improve. \`details\` holds strings only: \`field\`, where one field of the body is at fault,
and the operation id, which is also in the response header
\`Service-Operation-Id\` and in the server's log line of the call.

A request with the header \`Ngrok-Version\` gets \`ERR_NGROK_<number>\` as its \`error_code\`: the number of this table, or a
finer one where ngrok has one for that field.

| code | status | number | usual sentence |
|---|---|---|---|
${rows.join('\n')}

## What agents are told

An agent, and \`ssh\`, is refused with a sentence and one of ngrok's numbers, which its SDKs look for. The sentence names what
was asked for. Options that the API takes as well are refused with the numbers of the API, above.

| number | when | what to do |
|---|---|---|
${agentRows.join('\n')}

## What visitors see

When an edge or an endpoint cannot answer, the visitor gets a page, JSON, plain text or a gRPC status, as the visitor can
read it, with the code in the header \`postern-error-code\`. The header \`ngrok-error-code\` has ngrok's number for it, unless
\`--ngrok-error-header\` is \`off\`. Services can send neither header, whatever the setting, so an error without
\`postern-error-code\` is one of the service itself, or of the agent beside it. On TCP and TLS edges the connection closes,
and the access log has the code.

| code | status | number | sentence | when | what to do |
|---|---|---|---|---|---|
${visitorRows.join('\n')}
`
}

function sortByCode<T extends object>(table: T): [keyof T & string, T[keyof T]][] {
  // The cast is safe: the tables are plain objects with exactly the keys of their type.
  return (Object.entries(table) as [keyof T & string, T[keyof T]][]).sort(([a], [b]) => a.localeCompare(b, 'en'))
}
