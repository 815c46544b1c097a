-- Hands the numbers of INFO semel to redis_exporter: redis_exporter --script semel.lua
-- They become redis_script_values{filename="semel.lua",key="semel_..."}.
local values = {}
for name, value in redis.call('INFO', 'semel'):gmatch('(semel_[%w_]+):([^\r\n]+)') do
  values[#values + 1] = name
  values[#values + 1] = value
end
return values
