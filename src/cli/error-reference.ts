/** The reference of error codes, made from the two tables of them: those of callers of the API, and those of visitors. */
import { errors } from '../model/errors.ts'
import { visitorErrorAdvice } from '../model/visitor-error-advice.ts'
import { visitorErrors } from '../model/visitor-errors.ts'

export function errorReference(): string {
  const rows = sorted(errors).map(([code, { status, text }]) => `| \`ERR_${code}\` | ${status} | ${text} |`)
  const visitorRows = sorted(visitorErrors).map(([code, { status, text }]) => {
    const { when, remedy } = visitorErrorAdvice[code]
    return `| \`ERR_${code}\` | ${status} | ${text} | ${when} | ${remedy} |`
  })
  return `# Errors

<!-- Made from src/model/errors.ts, visitor-errors.ts and visitor-error-advice.ts by \`npm run docs\`; change it there. -->

Codes of the [management API](#the-management-api), and those that [visitors](#what-visitors-see) of public addresses see.

## The management API

Every error of the management API has the same body, whatever went wrong:

\`\`\`json
{
  "error_code": "ERR_HOSTPORT_IN_USE",
  "status_code": 409,
  "msg": "\`hostports\`: \`app.example.com:443\` belongs to another edge; remove it there first",
  "details": { "operation_id": "op_…" }
}
\`\`\`

\`error_code\` is stable: scripts may rely on it. \`msg\` says what is wrong with which field and what to do about it; it is
written for people and may improve. \`details\` holds strings only. The operation id is also in the response header
\`Service-Operation-Id\` and in the server's log line of the call.

| code | status | usual sentence |
|---|---|---|
${rows.join('\n')}

## What visitors see

When an edge or an endpoint cannot answer, the visitor gets a page, JSON, plain text or a gRPC status, as the visitor can
read it, with the code in the header \`postern-error-code\`, and ngrok's number for the same in \`ngrok-error-code\`. Services
cannot send these headers, so an error without them is one of the service itself, or of the agent beside it. On TCP and TLS edges the connection closes, and the access log has the
code.

| code | status | sentence | when | what to do |
|---|---|---|---|---|
${visitorRows.join('\n')}
`
}

function sorted<T extends object>(table: T): [keyof T & string, T[keyof T]][] {
  // The cast: tables are plain objects whose keys are those of their type.
  return (Object.entries(table) as [keyof T & string, T[keyof T]][]).sort(([a], [b]) => a.localeCompare(b, 'en'))
}
