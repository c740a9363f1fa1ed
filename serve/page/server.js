// The engine is the server that the page came from.
let token = "";

export function useToken(value) {
  token = value;
}

async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, body ? { method: "POST", headers, body } : { headers });
  const answer = await response.json().catch(() => ({ error: `the server answers ${response.status}` }));
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error), { unauthorized: response.status === 401 });
}

const of = (name) => `v2/models/${encodeURIComponent(name)}`;

export const version = async () => (await ask("v2")).version;
export const models = () => ask("page/models");
export const classify = (name, blob) => ask(`${of(name)}/classify?top=10&seen=1`, blob);
export const detect = (name, blob) => ask(`${of(name)}/detect?top=100&seen=1`, blob);
export const profile = (name, blob) => ask(`${of(name)}/profile`, blob);
